// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

func TestASecretIsFilledIn(t *testing.T) {
	for name, c := range map[string]struct{ asked, want sandbox.Secret }{
		"a variable": {sandbox.Secret{Name: "TOKEN"}, sandbox.Secret{Name: "TOKEN"}},
		"bound": {
			sandbox.Secret{Name: "_t2", Hosts: []string{"API.Example.org."}},
			sandbox.Secret{Name: "_t2", Hosts: []string{"api.example.org"}, Header: "authorization", Format: "Bearer {value}"},
		},
		"bound to the same twice, and with a header": {
			sandbox.Secret{Name: "K", Hosts: []string{"*.example.org", "*.EXAMPLE.org", "a.example.net"}, Header: "X-Api-Key"},
			sandbox.Secret{Name: "K", Hosts: []string{"*.example.org", "a.example.net"}, Header: "x-api-key", Format: "{value}"},
		},
		"with a format of its own": {
			sandbox.Secret{Name: "K", Hosts: []string{"example.org"}, Format: "token {value}!"},
			sandbox.Secret{Name: "K", Hosts: []string{"example.org"}, Header: "authorization", Format: "token {value}!"},
		},
	} {
		got, err := c.asked.Normal()
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %+v, %v; want %+v", name, got, err, c.want)
		}
		if again, err := got.Normal(); err != nil || !reflect.DeepEqual(again, got) {
			t.Errorf("%s: a second time gives %+v, %v", name, again, err)
		}
	}
}

func TestASecretThatCannotBeIsRefusedByField(t *testing.T) {
	host := []string{"example.org"}
	many := make([]string, sandbox.MaxSecretHosts+1)
	for i := range many {
		many[i] = fmt.Sprintf("h%d.example.org", i)
	}
	for field, bad := range map[string][]sandbox.Secret{
		"name": {
			{}, {Name: "1A"}, {Name: "A-B"}, {Name: "A B"}, {Name: "A=B"}, {Name: "Ä"}, {Name: "A\x00"}, {Name: "A\n"},
			{Name: strings.Repeat("A", sandbox.MaxSecretName+1)}, {Name: strings.Repeat("x", 1<<20)},
		},
		"hosts": {
			{Name: "A", Header: "x"}, {Name: "A", Format: "{value}"}, {Name: "A", Hosts: many},
			{Name: "A", Hosts: []string{""}}, {Name: "A", Hosts: []string{"http://example.org"}}, {Name: "A", Hosts: []string{"a b"}},
			{Name: "A", Hosts: []string{"*"}}, {Name: "A", Hosts: []string{"a.*.org"}}, {Name: "A", Hosts: []string{"example.org:443"}},
			{Name: "A", Hosts: []string{"example.org\r\nx"}}, {Name: "A", Hosts: []string{"ok.org", "a/b"}},
		},
		"header": {
			{Name: "A", Hosts: host, Header: "a b"}, {Name: "A", Hosts: host, Header: "a:"}, {Name: "A", Hosts: host, Header: "a\r\nb"},
			{Name: "A", Hosts: host, Header: "Ä"}, {Name: "A", Hosts: host, Header: strings.Repeat("h", 200)},
			{Name: "A", Hosts: host, Header: "Host"}, {Name: "A", Hosts: host, Header: "content-LENGTH"}, {Name: "A", Hosts: host, Header: "Transfer-Encoding"},
			{Name: "A", Hosts: host, Header: "connection"}, {Name: "A", Hosts: host, Header: "upgrade"}, {Name: "A", Hosts: host, Header: "Accept-Encoding"},
		},
		"format": {
			{Name: "A", Hosts: host, Format: "Bearer"}, {Name: "A", Hosts: host, Format: "{value} {value}"}, {Name: "A", Hosts: host, Format: "a\r\nb: {value}"},
			{Name: "A", Hosts: host, Format: "{value}\n"}, {Name: "A", Hosts: host, Format: " {value}"}, {Name: "A", Hosts: host, Format: "\x00{value}"},
			{Name: "A", Hosts: host, Format: strings.Repeat("x", sandbox.MaxSecretFormat) + "{value}"},
		},
	} {
		for _, s := range bad {
			_, err := s.Normal()
			if !fault.Is(err, fault.Invalid) || len(fault.As(err).Fields) == 0 || fault.As(err).Fields[0].Name != field {
				t.Errorf("%.60q: %v, want fault.Invalid of %s", fmt.Sprintf("%+v", s), err, field)
			}
			if err != nil && len(err.Error()) > 500 {
				t.Errorf("%s: the error has %d bytes", field, len(err.Error()))
			}
		}
	}
	_, err := sandbox.Secret{Name: "1", Hosts: host, Header: "host", Format: "x"}.Normal()
	if n := len(fault.As(err).Fields); n != 3 {
		t.Errorf("three fields are wrong and %d are named: %v", n, err)
	}
}

func TestAValueFitsWhereItGoes(t *testing.T) {
	plain, bound := sandbox.Secret{Name: "A"}, sandbox.Secret{Name: "A", Hosts: []string{"example.org"}}
	for _, c := range []struct {
		name         string
		value        string
		plain, bound bool
	}{
		{"a token", "sk-1234", true, true},
		{"four bytes", "1234", true, true},
		{"three bytes", "123", false, false},
		{"nothing", "", false, false},
		{"lines", "-----BEGIN KEY-----\nAAAA\n", true, false},
		{"a newline that was read with it", "sk-1234\n", true, false},
		{"a header in it", "x\r\nHost: evil", true, false},
		{"a space before", " sk-1234", true, false},
		{"a space in it", "user name", true, true},
		{"umlauts", "pässwörter", true, true},
		{"a zero byte", "sk-\x001234", false, false},
		{"no UTF-8", "sk-\xff1234", false, false},
		{"as long as a header", strings.Repeat("x", sandbox.MaxBoundValue), true, true},
		{"longer", strings.Repeat("x", sandbox.MaxBoundValue+1), true, false},
		{"as long as a variable", strings.Repeat("x", sandbox.MaxSecretValue), true, false},
		{"longer yet", strings.Repeat("x", sandbox.MaxSecretValue+1), false, false},
	} {
		for kind, ok := range map[*sandbox.Secret]bool{&plain: c.plain, &bound: c.bound} {
			err := kind.CheckSecretValue(c.value)
			if (err == nil) != ok {
				t.Errorf("%s, bound %v: %v", c.name, kind.Bound(), err)
			}
			if err != nil && !fault.Is(err, fault.Invalid) || err != nil && c.value != "" && strings.Contains(err.Error(), c.value) {
				t.Errorf("%s, bound %v: the error %q is not Invalid, or has the value", c.name, kind.Bound(), err)
			}
		}
	}
}

func TestTheValueGoesIntoTheFormatAsItIs(t *testing.T) {
	s, err := sandbox.Secret{Name: "A", Hosts: []string{"example.org"}}.Normal()
	if err != nil {
		t.Fatal(err)
	}
	for _, value := range []string{"sk-1", "$1 %s {value}", `\0`} {
		if got := s.HeaderValue(value); got != "Bearer "+value {
			t.Errorf("the header says %q, want the value %q behind Bearer", got, value)
		}
	}
	if s.StandIn() != "sandpit-secret-A" {
		t.Errorf("the stand-in is %q", s.StandIn())
	}
}
