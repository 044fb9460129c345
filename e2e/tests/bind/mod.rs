//! API binding: an API of `leader` in `east` and `west`. Nobody plays the operator but the tests.

mod answered;
mod backend;
mod changed_back;
mod commands;
mod evicted;
mod flood;
mod frozen;
mod go;
mod holder;
mod isolation;
mod konnector;
mod lifecycle;
mod moments;
mod namespaces;
mod orphans;
mod quiet;
mod refused;
mod refused_contracts;
mod refused_writes;
mod requests;
mod restored;
mod schemas;
mod unseen;
mod vectors;
mod whole;
