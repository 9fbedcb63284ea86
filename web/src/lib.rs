//! Sumout in the browser, as JavaScript sees it: a model that answers about rows of numbers, and the service of the page.
//!
//! Everything here parses, calls and returns. What the numbers mean is said in `web/npm/index.d.ts`.

mod model;
mod page;

pub use model::WebModel;
pub use page::PageService;
