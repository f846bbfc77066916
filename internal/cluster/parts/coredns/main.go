// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Command coredns is CoreDNS with the plugins that a test cluster needs.
package main

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/kubernetes"
)

func main() {
	dnsserver.Directives = []string{"errors", "cache", "kubernetes"}
	coremain.Run()
}
