//! The place where test hooks attach: the model and the handler as they are, or, with the feature `test-hooks`, each
//! controlled by a test. No other code of the loader or of its callers depends on the feature.

#[cfg(not(feature = "test-hooks"))]
mod plain {
    use crate::{api::Handler, model::Transformer};

    /// The model that the engine runs.
    pub type ServedModel = Transformer;
    /// The handler that answers requests.
    pub type ServedHandler = Handler;

    /// `model` as `handler` serves it.
    pub(in crate::runtime) fn attach(_handler: &ServedHandler, model: Transformer) -> ServedModel {
        model
    }

    /// The transformer inside.
    pub(in crate::runtime) fn transformer(model: &mut ServedModel) -> &mut Transformer {
        model
    }
}

#[cfg(feature = "test-hooks")]
mod hooked {
    use crate::{
        model::Transformer,
        test_hooks::{HookedHandler, HookedModel},
    };

    /// The model that the engine runs.
    pub type ServedModel = HookedModel<Transformer>;
    /// The handler that answers requests.
    pub type ServedHandler = HookedHandler;

    /// `model` as `handler` serves it.
    pub(in crate::runtime) fn attach(handler: &ServedHandler, model: Transformer) -> ServedModel {
        handler.attach(model)
    }

    /// The transformer inside.
    pub(in crate::runtime) fn transformer(model: &mut ServedModel) -> &mut Transformer {
        model.model_mut()
    }
}

#[cfg(feature = "test-hooks")]
pub use hooked::*;
#[cfg(not(feature = "test-hooks"))]
pub use plain::*;
