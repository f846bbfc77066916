// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package seal keeps bytes that only holders of the key can read: sealed by AES-256-GCM under one
// key of a ring, and bound to what they belong to, so that a sealed value that is put elsewhere
// does not open. It knows keys and bytes, and nothing of what they are for.
//
// # Sealed bytes
//
//	1 byte   version, 1
//	8 bytes  id of the key
//	12 bytes nonce, random
//	n bytes  the value, encrypted
//	16 bytes tag
//
// The key itself seals nothing: what seals, names the key and is derived by label are keys of
// their own, made of it by HKDF-SHA256. With random nonces one key is good for four thousand
// million values.
package seal
