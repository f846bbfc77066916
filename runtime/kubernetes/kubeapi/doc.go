// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package kubeapi speaks to a Kubernetes API server: by its plain verbs over HTTP and JSON, with the types that Kubernetes
// publishes. How the server is found, trusted and signed in to is client-go's.
//
// It knows no sandbox. Errors are those of package fault, and quote what the API server said.
package kubeapi
