//! Services: exporting this cluster's, importing the set's.

pub mod antrea;
pub mod entry;
pub mod export;
pub mod import;
pub mod knowledge;
pub mod status;
pub mod view;
