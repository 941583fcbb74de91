"""Tests of telemetry: metrics, traces and logs of real daemons."""
