// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"context"
	"net"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"sandpit.dev/network/policy"
	"sandpit.dev/sandbox"
)

// hostsOwn is a resolver that has records of the host's own network.
type hostsOwn struct{ *world }

func (hostsOwn) LookupMX(context.Context, string) ([]*net.MX, error) {
	return []*net.MX{{Host: "mail.allowed.example."}, {Host: "mail.corp.example."}, {Host: "mail.internal."}, {Host: "mail."}, {Host: "."}}, nil
}

func (hostsOwn) LookupTXT(context.Context, string) ([]string, error) {
	return []string{"internal"}, nil
}

func (hostsOwn) LookupSRV(_ context.Context, _, _, name string) (string, []*net.SRV, error) {
	if strings.HasPrefix(name, "alias.") {
		name = "_x._tcp.corp.example."
	}
	return name, []*net.SRV{{Target: "dc.corp.example."}, {Target: "host.allowed.example."}, {Target: "dc.local."}}, nil
}

func TestTheHostsOwnNetworkIsNotTold(t *testing.T) {
	listed := restricted("allowed.example", "*.allowed.example", "*.corp.example", "db.internal", "corp.example", "5.0.0.10.in-addr.arpa")
	for mode, rules := range map[string]sandbox.NetworkPolicy{"open": {Mode: sandbox.NetworkOpen}, "listed": listed} {
		t.Run(mode, func(t *testing.T) {
			p := network(t, rules, func(o *Options) {
				w := o.Resolver.(*world)
				w.names["db.internal"] = []string{"93.184.216.77"}
				w.names["www.corp.example"] = []string{"93.184.216.78", "10.0.0.8"}
				o.Resolver = hostsOwn{w}
				o.Policy = policy.New(o.Policy.Of(), policy.Operator{Search: []string{"corp.example"}})
			})
			for _, name := range []string{"db.internal", "corp.example", "_ldap._tcp.corp.example", "5.0.0.10.in-addr.arpa"} {
				for _, kind := range []dnsmessage.Type{dnsmessage.TypeTXT, dnsmessage.TypeMX, dnsmessage.TypeSRV} {
					if m := p.ask("127.0.0.1:53", name, kind); len(m.Answers) != 0 || m.RCode != dnsmessage.RCodeNameError {
						t.Errorf("%s, %v: %v %v", name, kind, m.RCode, m.Answers)
					}
				}
				p.noted("dns", name, policy.Private)
			}
			if m := p.ask("127.0.0.1:53", "db.internal", dnsmessage.TypeA); len(m.Answers) != 0 || m.RCode != dnsmessage.RCodeNameError {
				t.Errorf("addresses: %v %v", m.RCode, m.Answers)
			}
			if got := addresses(p.ask("127.0.0.1:53", "www.corp.example", dnsmessage.TypeA)); !slices.Equal(got, []string{"93.184.216.78"}) {
				t.Errorf("addresses below a search domain: %v", got)
			}
			m := p.ask("127.0.0.1:53", "allowed.example", dnsmessage.TypeMX)
			if len(m.Answers) != 2 || m.Answers[0].Body.(*dnsmessage.MXResource).MX.String() != "mail.allowed.example." {
				t.Errorf("mail servers: %v", m.Answers)
			}
			m = p.ask("127.0.0.1:53", "allowed.example", dnsmessage.TypeSRV)
			if len(m.Answers) != 1 || m.Answers[0].Body.(*dnsmessage.SRVResource).Target.String() != "host.allowed.example." {
				t.Errorf("services: %v", m.Answers)
			}
			if m = p.ask("127.0.0.1:53", "alias.allowed.example", dnsmessage.TypeSRV); len(m.Answers) != 0 {
				t.Errorf("services of an alias: %v", m.Answers)
			}
			if m = p.ask("127.0.0.1:53", "allowed.example", dnsmessage.TypeTXT); len(m.Answers) != 1 {
				t.Errorf("public texts: %v", m.Answers)
			}
		})
	}
}
