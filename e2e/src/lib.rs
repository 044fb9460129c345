//! Tests of the whole, in `tests/`: real control planes, the real daemons under their own rights.
