//! What a token of a ServiceAccount says of itself. Nobody has asked its cluster whether that is true.

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use jiff::Timestamp;
use serde_json::Value;

/// What the names of ServiceAccounts as users begin with.
const USER: &str = "system:serviceaccount:";

/// What a token says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claims {
    /// Whose it is.
    pub account: Option<Account>,
    /// The uid of that ServiceAccount.
    pub uid: Option<String>,
    /// When it counts; none for one that counts until it is deleted.
    pub life: Option<Life>,
}

/// A ServiceAccount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// Its Namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// When a token counts, by the clock of who issued it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Life {
    /// From when on.
    pub issued: Timestamp,
    /// Until when.
    pub expires: Timestamp,
}

impl Account {
    /// Its name as a user.
    pub fn user(&self) -> String {
        format!("{USER}{}:{}", self.namespace, self.name)
    }
}

impl Claims {
    /// What the token says; none where it is none of a ServiceAccount.
    pub fn of(token: &str) -> Option<Self> {
        let claims = BASE64_URL_SAFE_NO_PAD.decode(token.split('.').nth(1)?).ok()?;
        let claims: Value = serde_json::from_slice(&claims).ok()?;
        // Tokens that are kept in Secrets say it in one word.
        let uid = claims.pointer("/kubernetes.io/serviceaccount/uid");
        let uid = uid.or_else(|| claims.get("kubernetes.io/serviceaccount/service-account.uid"));
        let second = |key: &str| Timestamp::from_second(claims.get(key)?.as_i64()?).ok();
        Some(Self {
            account: claims.get("sub").and_then(Value::as_str).and_then(account),
            uid: uid.and_then(Value::as_str).map(str::to_owned),
            life: second("iat").zip(second("exp")).map(|(issued, expires)| Life { issued, expires }),
        })
    }
}

/// The ServiceAccount that has this name as a user.
fn account(user: &str) -> Option<Account> {
    let (namespace, name) = user.strip_prefix(USER)?.split_once(':')?;
    Some(Account { namespace: namespace.to_owned(), name: name.to_owned() })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(claims: &Value) -> Option<Claims> {
        Claims::of(&format!("h.{}.s", BASE64_URL_SAFE_NO_PAD.encode(claims.to_string())))
    }

    #[test]
    fn a_token_says_whose_it_is_and_until_when_it_counts() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let account = Account { namespace: "clusterset-demo".into(), name: "freeport-member-east".into() };
        let bound = of(&json!({
            "sub": "system:serviceaccount:clusterset-demo:freeport-member-east", "iat": 1000, "exp": 2000,
            "kubernetes.io": {"namespace": "clusterset-demo", "serviceaccount": {"name": "freeport-member-east", "uid": "u1"}},
        }));
        let life = Life { issued: at(1000), expires: at(2000) };
        assert_eq!(account.user(), "system:serviceaccount:clusterset-demo:freeport-member-east");
        assert_eq!(
            bound,
            Some(Claims { account: Some(account.clone()), uid: Some("u1".into()), life: Some(life) })
        );
        let kept = of(&json!({
            "sub": "system:serviceaccount:clusterset-demo:freeport-member-east",
            "kubernetes.io/serviceaccount/service-account.uid": "u2",
        }));
        assert_eq!(kept, Some(Claims { account: Some(account), uid: Some("u2".into()), life: None }));
    }

    #[test]
    fn what_is_no_token_of_an_account_says_nothing() {
        assert_eq!(of(&json!({"sub": "jane", "exp": "soon"})), Some(Claims::default()));
        for odd in ["t", "a.b.c", "a.!.c", ""] {
            assert_eq!(Claims::of(odd), None, "{odd}");
        }
    }
}
