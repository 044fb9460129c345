//! What of a Service is exported, by what a member knows.

mod slices;
mod unanswered;
