//! Real processes: started, followed, limited, confined, ended.

mod confinement;
mod spawn;
mod support;

skillz_process::helper_entry!();
