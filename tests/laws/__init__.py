"""Laws, tried with every space of actions (`spaces.py`, one of each registered kind of knob) and every kind of field (`fields.py`).

| feature | modules |
|---|---|
| decide, learn, batches, within, best, distribution, report, plot, moments, save, pickle, checks, effects | test_spaces |
| the same with several limits, fields in limits, refused limits | test_limits |
| logs in every format, `like=` | test_logs; Vowpal Wabbit's formats: test_features |
| evaluate, doctor | test_offpolicy; compare, intervals with a bound: test_features |
| optimize, resume | test_features, test_fields; in limits: test_limits; refused trees and estimated densities: test_features |
| Rollout | test_rollouts; over HTTP: test_service |
| the service: loops, logs, models, summaries, reports, optimize | test_service |
| Mapped, commands | test_features |
| fields: decide, Log, own densities, evaluate, optimize, service, optimize from its log | test_fields |
| rewards and losses | test_outcomes |
| formulas and parts: agents, copies, logs, evaluate, optimize, Rollout, Mapped, commands | test_formulas; over HTTP: test_service |
| schedules | test_schedules |
"""
