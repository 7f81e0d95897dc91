"""Nova's services report once they have started, and not 5 s later."""

from nova.servicegroup import api

api.INITIAL_REPORTING_DELAY = 0.1
