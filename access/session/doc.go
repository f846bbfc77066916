// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package session signs people in who use the server by a browser.
//
// A browser cannot send a token along with all that it asks for, and a page that could read one could lose it. So a token
// is exchanged once for a session: a random secret, which the browser keeps as a cookie that no page can read,
// and of which the record has the hash alone. A session is bound to the secret of the token that it was exchanged for: when
// that is valid no more, the session is not either, and what is open by it ends. It ends by itself, too: at a time
// that was set when it began, and when it was not used for long.
//
// A code is the right to one such exchange within a minute. A program that has a token makes one for the browser of
// the same person, so that the token itself is in no address.
package session
