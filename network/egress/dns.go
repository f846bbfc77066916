// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"sandpit.dev/network/policy"
	"sandpit.dev/sandbox"
)

// Bounds of the questions for names.
const (
	maxQuestions  = 64 // that are answered at a time; more are left unanswered, and asked again
	resolveBound  = 5 * time.Second
	answerTTL     = 30 // seconds; what the answer says of itself is not told us
	maxAnswers    = 32
	maxUDPAnswer  = 1232 // bytes; what fits in a packet everywhere
	tcpPatience   = 30 * time.Second
	minTCPMessage = 12
)

// Resolver finds addresses and other records of names; *net.Resolver is one.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
	LookupMX(ctx context.Context, name string) ([]*net.MX, error)
	LookupTXT(ctx context.Context, name string) ([]string, error)
	LookupSRV(ctx context.Context, service, proto, name string) (string, []*net.SRV, error)
}

// answer gives the answer to a question, nil to what is none. Answers longer than
// room bytes say that they are cut.
func (g *Gate) answer(ctx context.Context, question []byte, room int) []byte {
	var p dnsmessage.Parser
	h, err := p.Start(question)
	if err != nil || h.Response {
		return nil
	}
	reply := dnsmessage.Header{ID: h.ID, Response: true, OpCode: h.OpCode, RecursionDesired: h.RecursionDesired, RecursionAvailable: true}
	q, err := p.Question()
	if err != nil {
		reply.RCode = dnsmessage.RCodeFormatError
		return pack(reply, nil, nil, "", room)
	}
	if h.OpCode != 0 || q.Class != dnsmessage.ClassINET {
		reply.RCode = dnsmessage.RCodeNotImplemented
		return pack(reply, &q, nil, "", room)
	}
	if _, err := p.Question(); !errors.Is(err, dnsmessage.ErrSectionDone) {
		reply.RCode = dnsmessage.RCodeFormatError
		return pack(reply, &q, nil, "", room)
	}
	name, ok := sandbox.NormalName(q.Name.String())
	if !ok {
		reply.RCode = dnsmessage.RCodeNameError
		return pack(reply, &q, nil, "", room)
	}
	now := g.state.Load()
	if reason := now.policy.Name(name); reason != policy.Allowed {
		if now.policy.Learning() && reason.Learnable() {
			g.journal.note(Entry{Protocol: "dns", Name: name, Reason: reason, Learned: true})
		} else {
			g.journal.note(Entry{Protocol: "dns", Name: name, Reason: reason})
			reply.RCode = dnsmessage.RCodeNameError
			return pack(reply, &q, nil, reason.Explain(name), room)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, resolveBound)
	defer cancel()
	records, err := g.records(ctx, now.policy, name, q)
	reply.RCode = rcode(err)
	return pack(reply, &q, records, "", room)
}

// records finds what a question asks for. What may not be told is left out.
func (g *Gate) records(ctx context.Context, p *policy.Policy, name string, q dnsmessage.Question) ([]dnsmessage.Resource, error) {
	var out []dnsmessage.Resource
	add := func(body dnsmessage.ResourceBody) {
		if len(out) < maxAnswers {
			out = append(out, dnsmessage.Resource{
				Header: dnsmessage.ResourceHeader{Name: q.Name, Class: dnsmessage.ClassINET, TTL: answerTTL}, Body: body,
			})
		}
	}
	switch q.Type {
	case dnsmessage.TypeA, dnsmessage.TypeAAAA:
		addrs, err := g.lookup(ctx, p, name, q.Type == dnsmessage.TypeAAAA)
		if err != nil {
			return nil, err
		}
		for _, a := range addrs {
			if a.Is4() {
				add(&dnsmessage.AResource{A: a.As4()})
			} else {
				add(&dnsmessage.AAAAResource{AAAA: a.As16()})
			}
		}
	case dnsmessage.TypeMX:
		all, err := g.o.Resolver.LookupMX(ctx, name+".")
		if err != nil {
			return nil, err
		}
		for _, mx := range all {
			if host, err := dnsmessage.NewName(mx.Host); err == nil {
				add(&dnsmessage.MXResource{Pref: mx.Pref, MX: host})
			}
		}
	case dnsmessage.TypeTXT:
		all, err := g.o.Resolver.LookupTXT(ctx, name+".")
		if err != nil {
			return nil, err
		}
		for _, text := range all {
			var parts []string
			for ; len(text) > 255; text = text[255:] {
				parts = append(parts, text[:255])
			}
			add(&dnsmessage.TXTResource{TXT: append(parts, text)})
		}
	case dnsmessage.TypeSRV:
		_, all, err := g.o.Resolver.LookupSRV(ctx, "", "", name+".")
		if err != nil {
			return nil, err
		}
		for _, srv := range all {
			if host, err := dnsmessage.NewName(srv.Target); err == nil {
				add(&dnsmessage.SRVResource{Priority: srv.Priority, Weight: srv.Weight, Port: srv.Port, Target: host})
			}
		}
	}
	return out, nil
}

// lookup finds the addresses of a name that may be connected to, and pins them.
func (g *Gate) lookup(ctx context.Context, p *policy.Policy, name string, six bool) ([]netip.Addr, error) {
	network := "ip4"
	if six {
		network = "ip6"
	}
	found, err := g.o.Resolver.LookupNetIP(ctx, network, name+".")
	if err != nil {
		return nil, err
	}
	var out []netip.Addr
	for _, a := range found {
		a = a.Unmap().WithZone("")
		if reason := p.Outside(a); reason != policy.Allowed {
			g.journal.note(Entry{Protocol: "dns", Name: name, Address: a, Reason: reason})
			continue
		}
		out = append(out, a)
	}
	g.pins.add(name, out)
	return out, nil
}

func rcode(err error) dnsmessage.RCode {
	var d *net.DNSError
	switch {
	case err == nil:
		return dnsmessage.RCodeSuccess
	case errors.As(err, &d) && d.IsNotFound:
		// It may exist with other records; nobody is told that it does not.
		return dnsmessage.RCodeSuccess
	}
	return dnsmessage.RCodeServerFailure
}

// The extended error "blocked" (RFC 8914), with a text, as an option of EDNS.
const (
	optionExtendedError = 15
	extendedBlocked     = 15
)

// pack writes an answer. why, if there is one, is why nothing is answered.
func pack(h dnsmessage.Header, q *dnsmessage.Question, records []dnsmessage.Resource, why string, room int) []byte {
	m := dnsmessage.Message{Header: h, Answers: records}
	if q != nil {
		m.Questions = []dnsmessage.Question{*q}
	}
	if why != "" {
		text := binary.BigEndian.AppendUint16(nil, extendedBlocked)
		text = append(text, sandbox.Clip(why, 400)...)
		var opt dnsmessage.ResourceHeader
		if opt.SetEDNS0(maxUDPAnswer, dnsmessage.RCodeSuccess, false) == nil {
			m.Additionals = []dnsmessage.Resource{{Header: opt, Body: &dnsmessage.OPTResource{Options: []dnsmessage.Option{{Code: optionExtendedError, Data: text}}}}}
		}
	}
	b, err := m.Pack()
	if err != nil {
		return nil
	}
	if len(b) > room {
		m.Truncated, m.Answers, m.Additionals = true, nil, nil
		if b, err = m.Pack(); err != nil {
			return nil
		}
	}
	return b
}

// answerStream answers the questions on a TCP connection, each with its length before it.
func (g *Gate) answerStream(ctx context.Context, c *net.TCPConn) {
	for {
		_ = c.SetDeadline(time.Now().Add(tcpPatience))
		var size [2]byte
		if _, err := io.ReadFull(c, size[:]); err != nil {
			return
		}
		n := binary.BigEndian.Uint16(size[:])
		if n < minTCPMessage {
			return
		}
		b := make([]byte, n)
		if _, err := io.ReadFull(c, b); err != nil {
			return
		}
		a := g.answer(ctx, b, 1<<16-1)
		if a == nil {
			return
		}
		if _, err := c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(a))), a...)); err != nil {
			return
		}
	}
}
