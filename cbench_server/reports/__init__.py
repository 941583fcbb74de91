"""Reports: a run or a comparison in the formats that people and programs read."""
