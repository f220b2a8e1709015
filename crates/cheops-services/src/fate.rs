//! What came of sending something to a service, and whether it may be sent again. The rule is one,
//! for what passes through and for what is an operation.

use http::{Method, StatusCode};

use super::pool::Unanswered;

/// What came of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// A service answered.
    Answered(StatusCode),
    /// No service has seen any of it.
    NeverArrived,
    /// It may have arrived, and no answer came.
    Unknown,
}

/// What it comes to if something is done twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repeating {
    /// The same as once.
    Harmless,
    /// Something else than once.
    Harmful,
}

impl Repeating {
    /// Of requests of which it is known whether they may be sent again.
    pub fn of(may_be_sent_again: bool) -> Self {
        if may_be_sent_again { Self::Harmless } else { Self::Harmful }
    }
}

/// Of a request of which nothing is known but its method.
impl From<&Method> for Repeating {
    fn from(method: &Method) -> Self {
        Self::of(method.is_idempotent())
    }
}

impl Fate {
    /// Whether it may be sent again, to this service or to another. What a service may have taken
    /// in is not, if doing it twice is not the same as doing it once.
    pub fn allows_another(self, repeating: Repeating) -> bool {
        let may_be_repeated = repeating == Repeating::Harmless;
        match self {
            Self::NeverArrived => true,
            Self::Unknown => may_be_repeated,
            Self::Answered(status) => {
                let gives_up = matches!(
                    status,
                    StatusCode::BAD_GATEWAY
                        | StatusCode::SERVICE_UNAVAILABLE
                        | StatusCode::GATEWAY_TIMEOUT
                );
                gives_up && may_be_repeated
            }
        }
    }
}

impl From<&Unanswered> for Fate {
    fn from(error: &Unanswered) -> Self {
        match error {
            Unanswered::NoConnection(_) => Self::NeverArrived,
            Unanswered::BrokenOff(_) => Self::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_done_twice_that_once_would_not_do() {
        let unavailable = Fate::Answered(StatusCode::SERVICE_UNAVAILABLE);
        let cases = [
            (Fate::NeverArrived, Method::POST, true),
            (Fate::NeverArrived, Method::GET, true),
            (Fate::Unknown, Method::POST, false),
            (Fate::Unknown, Method::PATCH, false),
            (Fate::Unknown, Method::DELETE, true),
            (unavailable, Method::GET, true),
            (unavailable, Method::PUT, true),
            (unavailable, Method::POST, false),
            (Fate::Answered(StatusCode::INTERNAL_SERVER_ERROR), Method::GET, false),
            (Fate::Answered(StatusCode::NOT_FOUND), Method::GET, false),
            (Fate::Answered(StatusCode::LOOP_DETECTED), Method::PUT, false),
        ];
        for (fate, method, expected) in cases {
            assert_eq!(fate.allows_another((&method).into()), expected, "{fate:?} {method}");
        }
    }
}
