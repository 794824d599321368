//! `skillz` and `skillz serve`

use crate::context::Context;

pub(crate) fn run(context: Context) -> anyhow::Result<()> {
    let _ = context;
    Ok(())
}
