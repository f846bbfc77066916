// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"slices"
	"strings"

	"sandpit.dev/fault"
)

// Previews says who may see what programs in a sandbox serve, and what they see of the request. The zero value: whoever
// has a token or a link, and the host that was asked.
type Previews struct {
	Public bool   `json:"public,omitempty"` // everyone may see every port, by the preview's own host name
	Ports  []int  `json:"ports,omitempty"`  // likewise these, ascending; none where Public is set
	Host   string `json:"host,omitempty"`   // the Host that programs see: "", PreviewLocalhost, or a name
	Key    string `json:"key,omitempty"`    // of the token that opens every port; "": there is none. Another key is another token
}

// PreviewLocalhost is the Host by which a program sees localhost and its own port.
const PreviewLocalhost = "localhost"

// MaxPublicPorts is how many ports of one sandbox can be public without all being so.
const MaxPublicPorts = 64

// Shows reports whether everyone may see a port.
func (p Previews) Shows(port int) bool { return p.Public || slices.Contains(p.Ports, port) }

// Any reports whether everyone may see any port.
func (p Previews) Any() bool { return p.Public || len(p.Ports) > 0 }

// Equal reports whether both say the same. Keys are not compared, but that there is one.
func (p Previews) Equal(q Previews) bool {
	return p.Public == q.Public && p.Host == q.Host && (p.Key == "") == (q.Key == "") && slices.Equal(p.Ports, q.Ports)
}

// CheckPreviewHost checks a host that programs are to see: nothing, localhost, or the name of a host in lower case,
// with or without a port. The error is Invalid and about field.
func CheckPreviewHost(field, host string) error {
	if host == "" {
		return nil
	}
	name, port, has := strings.Cut(host, ":")
	ok := len(host) <= 253 && name != "" && (!has || port != "" && len(port) <= 5 && strings.Trim(port, "0123456789") == "")
	for label := range strings.SplitSeq(name, ".") {
		ok = ok && label != "" && len(label) <= 63 && strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
	}
	if !ok {
		return fault.InvalidField(field, "%q is not own, localhost or the lower-case name of a host", Clip(host, 80))
	}
	return nil
}
