"""JSON schema of claims.yml: the keys of a claim and of each rule."""

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
        "additionalProperties": False, "minProperties": 1,
        "description": "a value, or a range with at_least, at_most, or both",
    },
}
FACTOR = {"type": "number", "minimum": 1, "description": "a factor from 1 up"}
WIDTH = {"type": "number", "exclusiveMinimum": 1, "description": "a factor above 1"}
PER = {"enum": ["repeat", "point"], "description": "what `rate` is a share of"}
SHARE = {"type": "number", "exclusiveMinimum": 0, "maximum": 0.5, "description": "a share above 0, 0.5 at most"}
BASELINE = {"type": "object", "minProperties": 1, "maxProperties": 1, "additionalProperties": False,
            "properties": {"metric": TEXT, "arm": ARM},
            "description": "what is subtracted: {metric: NAME} or {arm: {parameter: value}}"}
ONE_ARM = {"of": ARM, "where": WHERE, "baseline": BASELINE}
TWO_ARMS = {**ONE_ARM, "than": ARM}
RATIO = {**TWO_ARMS, "symmetric": {"type": "boolean", "description": "whether signed ranks decide"}}
BOUNDS = {"low": NUMBER, "high": NUMBER}

# Each rule: its required keys, and the schema of all its keys. labbook.claims.rules explains them.
RULES = {
    "greater": (("of", "than"), {**RATIO, "margin": FACTOR}),
    "equal_within": (("of", "than", "margin"), {**RATIO, "margin": WIDTH}),
    "ratio_between": (("of", "than"), {**RATIO, **BOUNDS}),
    "differs_over": (("along", "margin"), {**ONE_ARM, "along": TEXT, "margin": WIDTH}),
    "grows_with": (("along",), {**ONE_ARM, "along": TEXT, "margin": FACTOR}),
    "rises_by": (("along",), {**ONE_ARM, "along": TEXT, **BOUNDS, "unit": TEXT}),
    "scales_with": (("along",), {**ONE_ARM, "along": TEXT, **BOUNDS}),
    "proportional": (("along", "low", "high"), {**ONE_ARM, "along": TEXT, **BOUNDS}),
    "grows_alike": (("of", "than", "along", "margin"), {**RATIO, "along": TEXT, "margin": WIDTH}),
    "grows_less": (("of", "than", "along"), {**RATIO, "along": TEXT, "margin": FACTOR}),
    "grows_slower": (("of", "than", "along"), {**TWO_ARMS, "along": TEXT, "margin": FACTOR}),
    "crosses_near": (("of", "than", "along", "at", "within"),
                     {**TWO_ARMS, "along": TEXT, "at": NUMBER,
                      "within": {"type": "number", "exclusiveMinimum": 0}}),
    "above": (("value",), {**ONE_ARM, "value": NUMBER, "unit": TEXT}),
    "below": (("value",), {**ONE_ARM, "value": NUMBER, "unit": TEXT}),
    "between": (("low", "high"), {**ONE_ARM, **BOUNDS, "unit": TEXT}),
    "always": ((), {**ONE_ARM, **BOUNDS, "unit": TEXT, "rate": SHARE, "per": PER}),
    "sometimes": ((), {**ONE_ARM, **BOUNDS, "unit": TEXT, "rate": SHARE, "per": PER}),
    "not_testable": (("reason",), {"reason": TEXT}),
}
# Rules of which low or high may be omitted, but not both.
OPEN_ENDED = ("always", "ratio_between", "rises_by", "scales_with", "sometimes")
PAPER = {
    "type": "object", "additionalProperties": False, "minProperties": 1,
    "properties": {"value": NUMBER, "low": NUMBER, "high": NUMBER, "order": TEXT, "none": TEXT,
                   "unit": {"type": "string"}, "text": TEXT},
}
NEED = {
    "type": "object", "additionalProperties": False, "required": ["metric", "otherwise"],
    "properties": {"metric": TEXT, "at_least": NUMBER, "at_most": NUMBER, "otherwise": TEXT},
    "description": "a metric of the place, at_least or at_most, and the reason shown where it is not met",
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
            "owner": {"enum": ["paper", "ours"], "description": "whose claim it is; the paper's if not said"},
            "headline": {"type": ["boolean", "array"], "items": TEXT, "minItems": 1,
                         "description": "whether the abstract says it; a list of ids where a matrix makes several"},
            "source": TEXT, "paper": PAPER, "experiment": TEXT, "metric": TEXT,
            "checked": {**TEXT, "description": "what was looked at, where the metric counts anomalies"},
            "changed": {**TEXT, "description": "what of the rule changed after data were published, and why"},
            "needs": {"type": "array", "minItems": 1, "items": NEED},
            "rule": {"type": "object", "required": ["name"],
                     "properties": {"name": {"enum": list(RULES)}}},
        },
        "allOf": [_when(name, *keys) for name, keys in RULES.items()],
    },
}
