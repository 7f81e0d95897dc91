"""Nova's services report right after their start instead of 5 s later."""

from nova.servicegroup import api

api.INITIAL_REPORTING_DELAY = 0.1
