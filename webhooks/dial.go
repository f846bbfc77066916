// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"syscall"
	"time"

	"sandpit.dev/fault"
	"sandpit.dev/network/policy"
	"sandpit.dev/sandbox"
)

const (
	connectBound = 3 * time.Second
	answerBound  = 10 * time.Second // of a whole attempt
	maxHead      = 16 << 10
	maxAnswer    = 16 << 10 // of a body that is read, so that the connection can be used again
)

// dialer connects to what webhooks may reach.
type dialer struct {
	policy *policy.Policy
	allow  []netip.Prefix
	// addresses returns those of this host.
	addresses func() ([]net.Addr, error)
}

// named reports whether the operator names an address.
func (d *dialer) named(a netip.Addr) bool {
	for _, p := range d.allow {
		if p.Contains(a.Unmap()) {
			return true
		}
	}
	return false
}

// check returns an error for an address that no webhook may reach. The server's own are among them, public or not.
func (d *dialer) check(a netip.Addr) error {
	a = a.Unmap().WithZone("")
	refused := func(why string) error {
		return fault.New(fault.Denied, "the address %s is %s", a, why).WithRemedy("the operator may name it in webhooks.allow of the configuration")
	}
	if d.named(a) {
		return nil
	}
	if d.policy.Outside(a) != policy.Allowed {
		return refused("not of the public internet")
	}
	own, err := d.addresses()
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "the addresses of this host are not known")
	}
	for _, o := range own {
		p, err := netip.ParsePrefix(o.String())
		if err != nil {
			continue
		}
		if mine := p.Addr().Unmap(); mine == a || slices.Contains(policy.Carried(a), mine) {
			return refused("this server's own")
		}
	}
	return nil
}

// control checks the address of each connection, at the last moment before it is made: a name may stand for another one
// at each look.
func (d *dialer) control(_, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return fault.New(fault.Denied, "%q is no address", sandbox.Clip(address, 80))
	}
	return d.check(to.Addr())
}

// client returns what sends deliveries.
func (d *dialer) client(resolver *net.Resolver, t *tls.Config) *http.Client {
	dial := &net.Dialer{Timeout: connectBound, Control: d.control, Resolver: resolver}
	return &http.Client{
		Transport: &http.Transport{
			Proxy: nil, DialContext: dial.DialContext, TLSClientConfig: t, TLSHandshakeTimeout: connectBound, ForceAttemptHTTP2: true,
			MaxResponseHeaderBytes: maxHead, MaxIdleConns: 64, MaxIdleConnsPerHost: 1, IdleConnTimeout: 30 * time.Second, DisableCompression: true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
