"""Systems and evaluators of other processes, used as if they were objects of this one."""
