"""What claims.yml may hold: the keys of a claim and of each rule."""

TEXT = {"type": "string", "minLength": 1}
NUMBER = {"type": "number"}
SCALAR = {"type": ["string", "number", "boolean", "null"]}
ARM = {"type": "object", "minProperties": 1, "additionalProperties": SCALAR,
       "description": "parameters and their values, such as {store: cassandra}"}
WHERE = {
    "type": "object",
    "additionalProperties": {
        "type": ["string", "number", "boolean", "null", "object"],
        "properties": {"at_least": NUMBER, "at_most": NUMBER},
        "additionalProperties": False,
    },
}
FACTOR = {"type": "number", "minimum": 1, "description": "a factor from 1 up"}
WIDTH = {"type": "number", "exclusiveMinimum": 1, "description": "a factor above 1"}
ONE = {"of": ARM, "where": WHERE}
TWO = {**ONE, "than": ARM}
ENDS = {"low": NUMBER, "high": NUMBER}

# Each rule's keys, the ones that must be there first. What they mean: labbook.claims.rules.
RULES = {
    "greater": (("of", "than"), {**TWO, "margin": FACTOR}),
    "equal_within": (("of", "than", "margin"), {**TWO, "margin": WIDTH}),
    "ratio_between": (("of", "than", "low", "high"), {**TWO, **ENDS}),
    "differs_over": (("along",), {**ONE, "along": TEXT, "margin": FACTOR}),
    "grows_with": (("along",), {**ONE, "along": TEXT, "margin": FACTOR}),
    "scales_with": (("along",), {**ONE, "along": TEXT, **ENDS}),
    "grows_alike": (("of", "than", "along", "margin"), {**TWO, "along": TEXT, "margin": WIDTH}),
    "grows_less": (("of", "than", "along"), {**TWO, "along": TEXT, "margin": FACTOR}),
    "grows_slower": (("of", "than", "along"), {**TWO, "along": TEXT, "margin": FACTOR}),
    "crosses_near": (("of", "than", "along", "at", "within"),
                     {**TWO, "along": TEXT, "at": NUMBER,
                      "within": {"type": "number", "exclusiveMinimum": 0}}),
    "above": (("value",), {**ONE, "value": NUMBER, "unit": TEXT}),
    "below": (("value",), {**ONE, "value": NUMBER, "unit": TEXT}),
    "between": (("low", "high"), {**ONE, **ENDS, "unit": TEXT}),
    "always": ((), {**ONE, **ENDS, "unit": TEXT}),
    "sometimes": ((), {**ONE, **ENDS, "unit": TEXT}),
    "not_testable": (("reason",), {"reason": TEXT}),
}
# rules of which low or high may be left out, not both
WITH_AN_END = ("always", "scales_with", "sometimes")
PAPER = {
    "type": "object", "additionalProperties": False, "minProperties": 1,
    "properties": {"value": NUMBER, "low": NUMBER, "high": NUMBER, "order": TEXT, "none": TEXT,
                   "unit": {"type": "string"}, "text": TEXT},
}
NEED = {
    "type": "object", "additionalProperties": False, "required": ["metric", "otherwise"],
    "properties": {"metric": TEXT, "at_least": NUMBER, "at_most": NUMBER, "otherwise": TEXT},
    "description": "a metric of the place, at_least or at_most, and what is so otherwise",
}


def _when(name, required, properties):
    needed = ["experiment", "metric"] if name != "not_testable" else []
    rule = {"required": list(required), "additionalProperties": False,
            "properties": {"name": TEXT, **properties}}
    return {"if": {"properties": {"rule": {"type": "object", "required": ["name"],
                                           "properties": {"name": {"const": name}}}}},
            "then": {"required": needed, "properties": {"rule": rule}}}


SCHEMA = {
    "type": "array", "description": "a list of claims",
    "items": {
        "type": "object", "additionalProperties": False,
        "required": ["id", "section", "statement", "source", "paper", "rule"],
        "properties": {
            "id": {"type": "string", "pattern": "^[a-z0-9][a-z0-9-]*$"}, "statement": TEXT,
            "section": {"type": "string", "pattern": "^[a-z0-9][a-z0-9-]*$",
                        "description": "a-z, 0-9 and -: the section whose table shows the claim"},
            "source": TEXT, "paper": PAPER, "experiment": TEXT, "metric": TEXT,
            "needs": {"type": "array", "minItems": 1, "items": NEED},
            "rule": {"type": "object", "required": ["name"],
                     "properties": {"name": {"enum": list(RULES)}}},
        },
        "allOf": [_when(name, *keys) for name, keys in RULES.items()],
    },
}
