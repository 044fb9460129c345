//! Services across three real clusters. One fleet serves most tests; each has a
//! Namespace of its own, and those that stop daemons run alone.

mod bad_export;
mod bad_record;
mod carried;
mod conflict;
mod downtime;
mod drift;
mod endpoint_ip;
mod excluded;
mod export;
mod families;
mod headless;
mod merge;
mod names;
mod namespace;
mod ports;
mod process;
mod reconciles;
mod refused;
mod restart;
mod slices;
mod taken;
