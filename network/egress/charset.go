// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"net/http"
	"slices"
	"strings"
)

// checkCharset returns errEncoding where an answer says that it is in a character set in which
// ASCII, and with it a value, is not written as its own bytes.
func checkCharset(h http.Header) error {
	for _, line := range h.Values("Content-Type") {
		for part := range strings.FieldsFuncSeq(line, func(r rune) bool { return r == ';' || r == ',' }) {
			name, label, _ := strings.Cut(part, "=")
			name = strings.ToLower(strings.TrimSpace(name))
			if base, _, _ := strings.Cut(name, "*"); base != "charset" {
				continue
			}
			if !extendsASCII(strings.ToLower(strings.Trim(label, " \t\"'"))) {
				return errEncoding
			}
		}
	}
	return nil
}

// extendsASCII reports whether a character set, by one of its names, has ASCII as its own bytes. Of
// one that is not known it does not.
func extendsASCII(label string) bool {
	switch label {
	case "", "utf-8", "utf8", "unicode-1-1-utf-8", "utf-8-mb4", "utf8mb4", "cesu-8", "us-ascii", "ascii", "ansi_x3.4-1968", "binary", "x-user-defined",
		"gb2312", "gb_2312-80", "gbk", "x-gbk", "gb18030", "cp936", "shift_jis", "shift-jis", "sjis", "x-sjis", "ms_kanji", "windows-31j",
		"cp932", "ks_c_5601-1987", "cp949", "uhc", "macintosh", "tis-620", "viscii", "armscii-8",
		"ibm437", "cp437", "ibm850", "cp850", "ibm852", "cp852", "ibm855", "cp855", "ibm866", "cp866", "866":
		return true
	}
	return slices.ContainsFunc([]string{
		"iso-8859-", "iso8859-", "iso_8859-", "latin", "windows-125", "windows-874", "cp125", "x-cp125", "koi8", "euc-", "x-euc-", "big5", "x-mac-",
	}, func(prefix string) bool { return strings.HasPrefix(label, prefix) })
}
