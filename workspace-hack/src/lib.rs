//! Nothing but dependencies. Cargo compiles a crate once for each set of features that is asked of it; every program of this
//! workspace depends on this crate, so that all ask for the same ones, whichever program is built, alone or with others.
