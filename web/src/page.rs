//! The service of the page, without HTTP.

use sumout_serve::local::{LocalProblem, LocalRequest, LocalService};
use wasm_bindgen::prelude::*;

/// Answers the page's requests.
#[wasm_bindgen]
#[derive(Default)]
pub struct PageService {
    service: LocalService,
}

/// A problem as the service writes it: its status, a space and the sentence.
fn thrown(problem: LocalProblem) -> JsError {
    JsError::new(&format!("{} {}", problem.status, problem.message))
}

#[wasm_bindgen]
impl PageService {
    /// No models yet.
    #[wasm_bindgen(constructor)]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a model; one of that name is replaced.
    pub fn open(&mut self, name: &str, bytes: &[u8]) -> Result<(), JsError> {
        self.service.open(name, bytes).map_err(thrown)
    }

    /// The body of the answer to a request.
    pub fn answer(
        &mut self,
        path: &str,
        query: &str,
        csv: bool,
        body: &[u8],
    ) -> Result<Vec<u8>, JsError> {
        let request = LocalRequest {
            path,
            query,
            csv,
            body,
        };
        self.service.answer(request).map_err(thrown)
    }
}
