// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package daytona tests the wire of Daytona's clients with their own SDKs, as the registries have them and unmodified: of
// Python and of TypeScript, against the real binary, by DAYTONA_API_URL and DAYTONA_API_KEY alone.
package daytona
