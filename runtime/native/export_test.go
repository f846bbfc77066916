// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native

// NamespaceOf is the mark of a driver's cgroups.
var NamespaceOf = namespaceOf
