//! `freeport bind`: an API of one cluster, used in another.
//!
//! | module | holds |
//! |---|---|
//! | `provide` | makes a cluster a provider |
//! | `offer` | offers APIs of it, and shows what is offered |
//! | `contract` | makes somebody a consumer: the provider's half of binding an API |
//! | `consent` | which APIs a consumer agreed to |
//! | `answer` | what that half hands to the consumer's |
//! | `apiservice` | binds an API: the consumer's half |
//! | `remove` | ends a binding |
//! | `refused` | what is refused to the member for a binding, which ends waiting for it |
//! | `parties` | which cluster a contract is with |
//! | `told` | what the daemons are told of binding |

mod answer;
mod apiservice;
mod consent;
mod contract;
mod holder;
mod offer;
mod parties;
mod provide;
mod refused;
mod remove;
mod told;

pub use self::{
    apiservice::{ApiServiceOptions, Halves, bind_apiservice},
    offer::{Offer, OfferOptions, offer, offer_text, offers},
    provide::{ProvideOptions, Provided, provide},
    remove::{RemoveOptions, remove},
};
