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
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

// Bounds of the questions for names.
const (
	maxQuestions  = 64 // that are answered at a time; more are left unanswered, and asked again
	resolveBound  = 5 * time.Second
	answerTTL     = 30 // seconds; what the answer says of itself is not told us
	maxAnswers    = 32
	minUDPAnswer  = 512  // bytes; what every program takes
	maxUDPAnswer  = 1232 // bytes; what fits in a packet everywhere
	maxQuestion   = 4096 // bytes
	maxStreams    = 32   // TCP connections with questions
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

// form is what an answer may look like.
type form struct {
	room int  // in bytes
	opt  bool // the question had EDNS, so the answer may
}

// formOf reads the form from the rest of a question. Datagrams are no longer than it says
// and than passes everywhere.
func formOf(p *dnsmessage.Parser, datagram bool) form {
	out := form{room: 1<<16 - 1}
	if datagram {
		out.room = minUDPAnswer
	}
	if p.SkipAllQuestions() != nil || p.SkipAllAnswers() != nil || p.SkipAllAuthorities() != nil {
		return out
	}
	for {
		h, err := p.AdditionalHeader()
		if err != nil {
			return out
		}
		if h.Type == dnsmessage.TypeOPT {
			out.opt = true
			if datagram {
				out.room = min(max(int(h.Class), minUDPAnswer), maxUDPAnswer)
			}
			return out
		}
		if p.SkipAdditional() != nil {
			return out
		}
	}
}

// answer returns the answer to a question, nil for what is not a question.
func (g *Gate) answer(ctx context.Context, question []byte, datagram bool) []byte {
	var p dnsmessage.Parser
	h, err := p.Start(question)
	if err != nil || h.Response {
		return nil
	}
	reply := dnsmessage.Header{ID: h.ID, Response: true, OpCode: h.OpCode, RecursionDesired: h.RecursionDesired, RecursionAvailable: true}
	q, err := p.Question()
	if err != nil {
		g.refuse(Entry{Protocol: "dns"}, policy.Protocol)
		reply.RCode = dnsmessage.RCodeFormatError
		return pack(reply, nil, nil, "", form{room: minUDPAnswer})
	}
	_, more := p.Question()
	room := formOf(&p, datagram)
	name, ok := sandbox.NormalName(q.Name.String())
	switch {
	case h.OpCode != 0 || q.Class != dnsmessage.ClassINET:
		reply.RCode = dnsmessage.RCodeNotImplemented
	case !errors.Is(more, dnsmessage.ErrSectionDone):
		reply.RCode = dnsmessage.RCodeFormatError
	case !ok:
		reply.RCode = dnsmessage.RCodeNameError
	}
	if reply.RCode != dnsmessage.RCodeSuccess {
		g.refuse(Entry{Protocol: "dns", Name: name}, policy.Protocol)
		return pack(reply, &q, nil, "", room)
	}
	now := g.state.Load()
	if reason := now.policy.Name(name); reason != policy.Allowed {
		if now.policy.Learning() && reason.Learnable() {
			g.journal.note(Entry{Protocol: "dns", Name: name, Reason: reason, Learned: true})
		} else {
			g.refuse(Entry{Protocol: "dns", Name: name}, reason)
			reply.RCode = dnsmessage.RCodeNameError
			return pack(reply, &q, nil, reason.Explain(name), room)
		}
	}
	reason := now.policy.Records(name)
	if q.Type == dnsmessage.TypeA || q.Type == dnsmessage.TypeAAAA {
		reason = now.policy.Addresses(name)
	}
	if reason != policy.Allowed {
		g.refuse(Entry{Protocol: "dns", Name: name}, reason)
		reply.RCode = dnsmessage.RCodeNameError
		return pack(reply, &q, nil, reason.Explain(name), room)
	}
	if rule := g.quotas.take(now.policy, name, time.Now()); rule != "" {
		g.refuse(Entry{Protocol: "dns", Name: rule}, policy.Names)
		reply.RCode = dnsmessage.RCodeRefused
		return pack(reply, &q, nil, policy.Names.Explain(rule), room)
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
			if host, ok := publicHost(p, mx.Host); ok {
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
		owner, all, err := g.o.Resolver.LookupSRV(ctx, "", "", name+".")
		if err != nil {
			return nil, err
		}
		if _, ok := publicHost(p, owner); owner != "" && !ok {
			return nil, nil // the name is another one for a name that may not be asked for
		}
		for _, srv := range all {
			if host, ok := publicHost(p, srv.Target); ok {
				add(&dnsmessage.SRVResource{Priority: srv.Priority, Weight: srv.Weight, Port: srv.Port, Target: host})
			}
		}
	}
	return out, nil
}

// publicHost returns the name of a host that a record names, unless it is of the server's own network.
func publicHost(p *policy.Policy, host string) (dnsmessage.Name, bool) {
	name, ok := sandbox.NormalName(host)
	if host != "." && (!ok || p.Records(name) != policy.Allowed) { // the root: there is no such host
		return dnsmessage.Name{}, false
	}
	out, err := dnsmessage.NewName(host)
	return out, err == nil
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
		if reason := p.AddressOf(name, a); reason != policy.Allowed {
			// Without the address: the host's neighbourhood is no business of the sandbox.
			g.journal.note(Entry{Protocol: "dns", Name: name, Reason: reason})
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
		// It may exist with other records, so the answer does not say that it does not.
		return dnsmessage.RCodeSuccess
	}
	return dnsmessage.RCodeServerFailure
}

// The extended error "blocked" (RFC 8914), with a text, as an option of EDNS.
const (
	optionExtendedError = 15
	extendedBlocked     = 15
)

// pack writes an answer with as many records as there is room for. why, if there is
// one, is why nothing is answered.
func pack(h dnsmessage.Header, q *dnsmessage.Question, records []dnsmessage.Resource, why string, f form) []byte {
	m := dnsmessage.Message{Header: h, Answers: records}
	if q != nil {
		m.Questions = []dnsmessage.Question{*q}
	}
	var opt dnsmessage.OPTResource
	if f.opt {
		var head dnsmessage.ResourceHeader
		if head.SetEDNS0(maxUDPAnswer, dnsmessage.RCodeSuccess, false) == nil {
			m.Additionals = []dnsmessage.Resource{{Header: head, Body: &opt}}
		}
		if why != "" {
			text := binary.BigEndian.AppendUint16(nil, extendedBlocked)
			text = append(text, sandbox.Clip(why, 400)...)
			opt.Options = []dnsmessage.Option{{Code: optionExtendedError, Data: text}}
		}
	}
	for {
		b, err := m.Pack()
		switch {
		case err != nil:
			return nil
		case len(b) <= f.room:
			return b
		case len(m.Answers) > 0:
			m.Truncated, m.Answers = true, m.Answers[:len(m.Answers)-1]
		case opt.Options != nil:
			opt.Options = nil
		default:
			return nil
		}
	}
}

// answerStream answers the questions on a TCP connection, each with its length before it.
func (g *Gate) answerStream(ctx context.Context, c runtime.Conn) {
	noQuestion := func() {
		to := destination(c)
		g.refuse(Entry{Protocol: "tcp", Address: to.Addr(), Port: to.Port()}, policy.Protocol)
	}
	for g.refused[datagrams].wait(ctx) {
		_ = c.SetDeadline(time.Now().Add(tcpPatience))
		var size [2]byte
		if _, err := io.ReadFull(c, size[:]); err != nil {
			return
		}
		n := binary.BigEndian.Uint16(size[:])
		if n < minTCPMessage || n > maxQuestion {
			noQuestion()
			return
		}
		b := make([]byte, n)
		if _, err := io.ReadFull(c, b); err != nil {
			return
		}
		if !take(ctx, g.questions) {
			return
		}
		a := g.answer(ctx, b, false)
		<-g.questions
		if a == nil {
			noQuestion()
			return
		}
		if _, err := c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(a))), a...)); err != nil {
			return
		}
	}
}
