"""Benchmarks that a user has built, named in an environment file: run where ours stand in for them."""

PATH = {"type": "string", "pattern": "^/", "description": "an absolute path"}
# Each by the folder that has it in every place where the benchmark runs, guests among them.
SCHEMA = {"type": "object", "additionalProperties": False,
          "properties": {
              "unixbench": {**PATH, "description": "the folder with UnixBench's Run, an absolute path"},
              "npb": {**PATH, "description": "the folder with NPB's MPI programs (bin), an absolute "
                                             "path"}}}
