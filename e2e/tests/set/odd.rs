//! What others write oddly, and what they do to our objects, harms nothing that is not about it.

mod edits;
mod flood;
mod objects;
