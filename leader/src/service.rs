//! Services: the records of one Service name from all members, and the ResourceImport made of them.

pub mod antrea;
pub mod entry;
pub mod judge;
pub mod merge;
pub mod merged;
