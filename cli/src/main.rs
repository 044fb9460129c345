//! f
fn main(){}
