// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package sdks has the SDKs of Orkestr and of the MCP Gateway, as the registries have them, as clients of the real server.
package sdks
