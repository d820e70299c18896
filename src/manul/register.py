"""Extensions: an agent, a kind of knob, an estimator or another part in one file outside the package, which registers itself.

>>> import manul
>>> manul.register.agent.__name__
'register_agent'
"""

from manul.actions.kinds.knob import register_knob as knob
from manul.actions.schedules import register_schedule as schedule
from manul.agents.agent_registry import register_agent as agent
from manul.logs.density_models import register_density_model as density_model
from manul.logs.formats import register_format as format  # noqa: A004 - as in manul.register.format
from manul.offpolicy.evaluation.estimators import register_estimator as estimator
from manul.offpolicy.evaluation.intervals import register_interval as interval
from manul.offpolicy.evaluation.outcome_model import register_outcome_model as outcome_model
from manul.service.store.store_registry import register_store as store

__all__ = ["agent", "density_model", "estimator", "format", "interval", "knob", "outcome_model", "schedule", "store"]
