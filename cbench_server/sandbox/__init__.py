"""A jail that runs unknown programs and says whether they pass their tests.

Four kinds of process. The client (`client.py`) lives in the evaluator's
process and starts the zygote (`zygote.py`), a warm interpreter that jails
itself once and forks pairs: a tester (`tester.py`), which runs the tests, and
a candidate (`candidate.py`), which runs the judged program in a jail of its
own and answers calls with plain data. The verdict goes from the tester to the
client; nothing that a candidate can reach is part of it.
"""
