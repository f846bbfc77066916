// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package webhooks sends the events of projects to URLs that their owners name.
//
// A webhook has a position in the log of events. Behind it deliveries are made, in the transaction that moves it, and each
// delivery is on record until it is done: none is lost where a server ends, at worst one is sent twice. A project without
// webhooks pays nothing.
//
// The URLs are whatever a caller wrote, and the server may reach what callers must not. So each connection is checked where
// it is made, by the address that it goes to; no redirect is followed, no proxy is used, certificates are verified, and of an
// answer nothing but its status is kept.
package webhooks
