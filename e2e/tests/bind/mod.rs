//! API binding: an API of `leader` in `east` and `west`. Nobody plays the operator but the tests.

mod backend;
mod changed_back;
mod commands;
mod evicted;
mod go;
mod isolation;
mod konnector;
mod lifecycle;
mod moments;
mod quiet;
mod requests;
mod restored;
mod unseen;
mod vectors;
mod whole;
