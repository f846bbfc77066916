// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package wire

// Preview is the address of what a port serves, and the token that opens it.
type Preview struct {
	SandboxID string `json:"sandboxId"`
	URL       string `json:"url"`
	Token     string `json:"token"`
}

// SignedPreview is an address that opens by itself.
type SignedPreview struct {
	SandboxID string `json:"sandboxId"`
	Port      int    `json:"port"`
	URL       string `json:"url"`
	Token     string `json:"token"`
}
