// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package browser gets Debian's Chromium, without installing it, and opens pages in it, for tests of what pages of other
// origins can do with a server, and of pages that a server has. It knows a program and the DevTools protocol, and no server.
package browser
