// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package policy decides what a sandbox may reach: which names are answered for,
// which addresses are connected to. It opens no socket and makes no request.
package policy
