// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"sandpit.dev/fault"
)

// Secret is a value that programs need and that cannot be read back: it is stored sealed, and no
// listing, event or log has it. Without hosts it is a variable of every command. With hosts it
// never enters the sandbox: the egress gate puts it into requests to those hosts, and programs
// see a stand-in under its name.
type Secret struct {
	Project string
	Sandbox ID     // zero: of all sandboxes of the project; their own of the same name go before it. Vault: of none
	Name    string // of a variable: a letter or _, then letters, digits and _; in the vault also -
	// Vault is the name of the secret of the project's vault that it is attached from, and that it follows; empty: it is
	// by itself.
	Vault       string
	Description string // for people, of a secret of the vault
	// Hosts are names, or "*.name" for all names below one; see CheckDomain.
	Hosts []string
	// Header is the request header that takes it, or NoHeader; empty where Hosts is.
	Header string
	// Format is what the header says, with SecretSlot where the value goes; empty
	// where Hosts is, and with NoHeader.
	Format string
	// StandInHeaders are request headers in which the value takes the place of the stand-in, where a program
	// wrote it; nil: the usual ones, see UsualStandInHeaders.
	StandInHeaders []string
	CreatedAt      time.Time
	UpdatedAt      time.Time
}

// SecretSlot is where the value of a secret goes in its Format.
const SecretSlot = "{value}"

// NoHeader is the Header of a secret that goes nowhere but where a program wrote its stand-in.
const NoHeader = "none"

// Vault is the owner of the secrets of a project that hold for none of its sandboxes, until they are attached to some. It
// is the id of none.
const Vault ID = "vault"

// Bounds of a secret.
const (
	MaxSecretName   = 64
	MaxSecretValue  = 32 << 10 // bytes of one that is a variable
	MaxBoundValue   = 8 << 10  // bytes of one that goes into a header
	MinSecretValue  = 4        // bytes: what is shorter cannot be kept out of output
	MaxSecretHosts  = 32
	MaxSecretFormat = 256

	MaxSecretDescription = 1024 // bytes
	MaxSecrets           = 64   // of a project itself, and of each sandbox
)

// Bound reports whether it goes into requests, and not into the sandbox.
func (s *Secret) Bound() bool { return len(s.Hosts) > 0 }

// StandIn returns what programs inside see under the name of a bound secret, so that those that
// insist on a key work. It is not secret. That of a secret of the vault is the same under whichever name it is attached.
func (s *Secret) StandIn() string {
	name := s.Vault
	if s.Sandbox == Vault {
		name = s.Name
	}
	if name == "" {
		return "sandpit-secret-" + s.Name
	}
	sum := sha256.Sum256([]byte(name)) // a name with - in it could begin another
	return "sandpit-vault-" + hex.EncodeToString(sum[:16])
}

// HeaderValue is what the header says when the value is put in.
func (s *Secret) HeaderValue(value string) string {
	return strings.ReplaceAll(s.Format, SecretSlot, value)
}

// Normal returns the secret with its hosts and header in the form that they are compared
// in and what was left out filled in, or fault.Invalid with every field that is wrong.
func (s Secret) Normal() (Secret, error) {
	var bad []fault.Field
	add := func(err error) {
		if err != nil {
			bad = append(bad, fault.As(err).Fields...)
		}
	}
	if s.Sandbox == Vault {
		add(s.checkVault())
	} else if !validSecretName(s.Name) {
		add(fault.InvalidField("name", "%q is not a valid secret name: a letter or _, then letters, digits and _, at most %d", Clip(s.Name, 80), MaxSecretName))
	}
	if !s.Bound() {
		if s.Header != "" || s.Format != "" || s.StandInHeaders != nil {
			add(fault.InvalidField("hosts", "is empty, and header, format and stand_in_headers mean nothing without hosts; name the hosts whose requests take the secret"))
		}
		return s, invalidFields(bad)
	}
	if len(s.Hosts) > MaxSecretHosts {
		add(fault.InvalidField("hosts", "has %d names, more than %d", len(s.Hosts), MaxSecretHosts))
		return s, invalidFields(bad)
	}
	hosts := make([]string, 0, len(s.Hosts))
	for _, h := range s.Hosts {
		n, err := CheckDomain("hosts", h)
		add(err)
		if err == nil && !slices.Contains(hosts, n) {
			hosts = append(hosts, n)
		}
	}
	s.Hosts = hosts
	if strings.EqualFold(s.Header, NoHeader) {
		return s.onlyStandIn(bad)
	}
	if s.Header == "" {
		s.Header = "authorization"
		if s.Format == "" {
			s.Format = "Bearer " + SecretSlot
		}
	}
	if s.Format == "" {
		s.Format = SecretSlot
	}
	s.Header = strings.ToLower(s.Header)
	add(checkSecretHeader(s.Header))
	stands, err := checkStandInHeaders(s.StandInHeaders)
	add(err)
	s.StandInHeaders = stands
	switch {
	case len(s.Format) > MaxSecretFormat:
		add(fault.InvalidField("format", "has %d bytes, more than %d", len(s.Format), MaxSecretFormat))
	case strings.Count(s.Format, SecretSlot) != 1:
		add(fault.InvalidField("format", "%q must have %s once, where the value goes", Clip(s.Format, 80), SecretSlot))
	case !headerText(s.Format):
		add(fault.InvalidField("format", "%q has characters that a header cannot", Clip(s.Format, 80)))
	}
	return s, invalidFields(bad)
}

// onlyStandIn is the end of Normal for a secret with NoHeader.
func (s Secret) onlyStandIn(bad []fault.Field) (Secret, error) {
	s.Header = NoHeader
	stands, err := checkStandInHeaders(s.StandInHeaders)
	switch {
	case err != nil:
		bad = append(bad, fault.As(err).Fields...)
	case s.Format != "":
		bad = append(bad, fault.Field{Name: "format", Message: "means nothing with the header none: the value takes the place of the stand-in"})
	case stands != nil && len(stands) == 0:
		bad = append(bad, fault.Field{Name: "stand_in_headers", Message: "is empty, and with the header none the secret would go nowhere"})
	}
	s.StandInHeaders = stands
	return s, invalidFields(bad)
}

// checkVault refuses what a secret of the vault cannot be.
func (s *Secret) checkVault() error {
	name := strings.ReplaceAll(s.Name, "-", "_")
	switch {
	case !validSecretName(name) || strings.HasPrefix(s.Name, "-"):
		return fault.InvalidField("name", "%q is not a valid secret name: a letter or _, then letters, digits, _ and -, at most %d", Clip(s.Name, 80), MaxSecretName)
	case !s.Bound():
		return fault.InvalidField("hosts", "is empty, and no secret goes to every host here; name the hosts that may have it")
	case len(s.Description) > MaxSecretDescription || !utf8.ValidString(s.Description):
		return fault.InvalidField("description", "has %d bytes, more than %d, or is not UTF-8", len(s.Description), MaxSecretDescription)
	}
	return nil
}

// CheckSecretValue refuses a value that cannot be kept or put where the secret says.
func (s *Secret) CheckSecretValue(value string) error {
	most := MaxSecretValue
	if s.Bound() {
		most = MaxBoundValue
	}
	switch {
	case len(value) < MinSecretValue:
		return fault.InvalidField("value", "has %d bytes; a secret needs %d or more", len(value), MinSecretValue)
	case len(value) > most:
		return fault.InvalidField("value", "has %d bytes, more than %d", len(value), most)
	case strings.ContainsRune(value, 0):
		return fault.InvalidField("value", "has a zero byte, which no variable can hold")
	case !utf8.ValidString(value):
		return fault.InvalidField("value", "is not valid UTF-8").
			WithRemedy("encode it (base64), and have the program decode it")
	case s.Bound() && !headerText(value):
		return fault.InvalidField("value", "has characters that a header cannot (line ends, control characters)").
			WithRemedy("was a newline read with it?")
	}
	return nil
}

func validSecretName(name string) bool {
	if name == "" || len(name) > MaxSecretName {
		return false
	}
	for i := range len(name) {
		switch c := name[i]; {
		case c == '_', 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z':
		case '0' <= c && c <= '9' && i > 0:
		default:
			return false
		}
	}
	return true
}

// checkSecretHeader refuses invalid header names (RFC 9110, 5.1), and headers that say how the
// request itself is to be read.
func checkSecretHeader(name string) error {
	if !validHeaderName(name) {
		return fault.InvalidField("header", "%q is not a valid header name", Clip(name, 80))
	}
	switch name {
	case "host", "content-length", "transfer-encoding", "connection", "te", "trailer", "upgrade", "keep-alive",
		"proxy-connection", "proxy-authorization", "expect", "content-encoding", "accept-encoding", "range":
		return fault.InvalidField("header", "%q says how a request is carried; it takes no secret", name)
	}
	return nil
}

// validHeaderName reports whether a name in lower case is one of a header.
func validHeaderName(name string) bool {
	const tokens = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz"
	return name != "" && len(name) <= 128 && !strings.ContainsFunc(name, func(r rune) bool { return !strings.ContainsRune(tokens, r) })
}

// headerText reports whether s can stand in a header (RFC 9110, 5.5).
func headerText(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return s == strings.TrimSpace(s)
}

func invalidFields(bad []fault.Field) error {
	if len(bad) == 0 {
		return nil
	}
	return &fault.Error{Code: fault.Invalid, Message: bad[0].Name + ": " + bad[0].Message, Fields: bad}
}
