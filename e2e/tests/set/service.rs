//! Services across three real clusters. One fleet serves most tests; each has a
//! Namespace of its own, and those that stop daemons run alone.

mod away;
mod bad_export;
mod bad_record;
mod bound;
mod careless;
mod carried;
mod columns;
mod conflict;
mod downtime;
mod drift;
mod edits;
mod endpoint_ip;
mod endpoints_objects;
mod excluded;
mod export;
mod families;
mod headless;
mod import_refused;
mod merge;
mod moments;
mod names;
mod namespace;
mod own;
mod ports;
mod process;
mod ranges;
mod reach;
mod reconciles;
mod refused;
mod restart;
mod slices;
mod taken;
mod unanswered;
mod writes;
