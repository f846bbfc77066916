// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"sandpit.dev/internal/certfile"
)

const (
	soonExpires   = 14 * 24 * time.Hour // a renewal that works has happened by then
	resolveBefore = 5 * time.Second
	// previewExample is a name as previews have it.
	previewExample = "8080-example"
)

// checkTLS checks the server's certificate.
func (c *TLSConfig) checkTLS(domain string, now time.Time) Check {
	const name, remedy = "tls", "sandpit tls init DOMAIN makes a certificate, and renews one that it made"
	pair, err := certfile.Read(c.Cert, c.Key)
	if err != nil {
		return failure(name, remedy, "%v", err)
	}
	leaf := pair.Leaf
	until := leaf.NotAfter.UTC().Format(time.DateOnly)
	switch {
	case !now.Before(leaf.NotAfter):
		return failure(name, remedy, "the certificate in %s has expired, on %s", c.Cert, until)
	case now.Before(leaf.NotBefore):
		return failure(name, "look at this machine's clock", "the certificate in %s does not hold before %s", c.Cert, leaf.NotBefore.UTC().Format(time.DateOnly))
	}
	if info, err := os.Stat(c.Key); err == nil && info.Mode().Perm()&0o077 != 0 {
		return warning(name, "chmod 600 "+c.Key, "others than its owner may read or change the key %s", c.Key)
	}
	var lacks []string
	if domain != "" {
		for _, host := range []string{domain, apiName + domain, previewExample + "." + domain} {
			if leaf.VerifyHostname(host) != nil {
				lacks = append(lacks, host)
			}
		}
	}
	switch {
	case len(lacks) > 0:
		return warning(name, "have one for "+domain+" and *."+domain, "the certificate in %s is not for %s: it is for %s", c.Cert, strings.Join(lacks, ", "), strings.Join(leaf.DNSNames, ", "))
	case leaf.NotAfter.Sub(now) < soonExpires:
		return warning(name, remedy, "the certificate in %s expires on %s", c.Cert, until)
	}
	return ok(name, "for %s, until %s", strings.Join(leaf.DNSNames, ", "), until)
}

// resolver finds the addresses of a name.
type resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// checkNames checks where the names at and below a server's domain lead to.
func checkNames(ctx context.Context, domain string, dns resolver, own []netip.Addr) Check {
	const name = "domain"
	ctx, cancel := context.WithTimeout(ctx, resolveBefore)
	defer cancel()
	var missing, elsewhere []string
	for _, host := range []string{domain, apiName + domain, previewExample + "." + domain} {
		found, err := dns.LookupNetIP(ctx, "ip", host)
		switch {
		case err != nil || len(found) == 0:
			missing = append(missing, host)
		case !slices.ContainsFunc(found, func(a netip.Addr) bool { a = a.Unmap(); return a.IsLoopback() || slices.Contains(own, a) }):
			elsewhere = append(elsewhere, fmt.Sprintf("%s (%v)", host, found[0]))
		}
	}
	switch {
	case len(missing) > 0:
		return warning(name, fmt.Sprintf("let %[1]s and *.%[1]s lead to the server, in DNS; /etc/hosts knows no *", domain), "no address is known of %s", strings.Join(missing, ", "))
	case len(elsewhere) > 0:
		return warning(name, "that is right where a proxy or a router stands there", "not this machine, but another one is at %s", strings.Join(elsewhere, ", "))
	}
	return ok(name, "%[1]s and *.%[1]s lead to this machine", domain)
}

// ownAddresses returns the addresses of this machine's interfaces.
func ownAddresses() (own []netip.Addr) {
	all, _ := net.InterfaceAddrs()
	for _, a := range all {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			own = append(own, p.Addr().Unmap())
		}
	}
	return own
}
