// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"encoding/xml"
	"net/http"

	"sandpit.dev/api/guard"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// The answers of S3 that clients read.
type (
	location struct {
		XMLName xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ LocationConstraint"`
		Region  string   `xml:",chardata"`
	}
	listing struct {
		XMLName     xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ ListBucketResult"`
		Name        string
		Prefix      string
		KeyCount    int
		MaxKeys     int
		IsTruncated bool
		Contents    []content
	}
	content struct {
		Key, LastModified, ETag string
		Size                    int64
		StorageClass            string
	}
	begun struct {
		XMLName  xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ InitiateMultipartUploadResult"`
		Bucket   string
		Key      string
		UploadID string `xml:"UploadId"`
	}
	completed struct {
		XMLName                     xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ CompleteMultipartUploadResult"`
		Location, Bucket, Key, ETag string
	}
	problem struct {
		XMLName   xml.Name `xml:"Error"`
		Code      string
		Message   string
		Resource  string
		RequestID string `xml:"RequestId"`
	}
)

func answer(w http.ResponseWriter, v any) error {
	text, err := xml.Marshal(v)
	if err != nil {
		return fault.Wrap(fault.Internal, err, "the answer cannot be written")
	}
	w.Header().Set("Content-Type", "application/xml")
	_, _ = w.Write(append([]byte(xml.Header), text...))
	return nil
}

// answerError answers with an error as S3 writes it.
func answerError(w http.ResponseWriter, r *http.Request, err error) {
	code := codeOf(fault.As(err))
	if fault.Is(err, fault.Unauthenticated) {
		err = guard.WithStatus(http.StatusForbidden, err)
	}
	guard.ErrorText(w, r, err, "application/xml", func(p v1.Problem) []byte {
		text, err := xml.Marshal(problem{Code: code, Message: p.Detail, Resource: sandbox.Clip(r.URL.Path, 400), RequestID: guard.RequestID(r.Context())})
		if err != nil {
			return nil // cannot be: it is plain text
		}
		return append([]byte(xml.Header), text...)
	})
}

// codeOf is what S3 calls an error. Clients try some of them again.
func codeOf(e *fault.Error) string {
	switch e.Code {
	case fault.Unauthenticated:
		return "SignatureDoesNotMatch"
	case fault.Denied:
		return "AccessDenied"
	case fault.NotFound:
		return "NoSuchKey"
	case fault.TooLarge:
		return "EntityTooLarge"
	case fault.Exhausted:
		return "QuotaExceeded"
	case fault.Unavailable, fault.Full:
		return "ServiceUnavailable"
	case fault.Invalid, fault.Malformed, fault.Unsupported:
		return "InvalidRequest"
	}
	return "InternalError"
}
