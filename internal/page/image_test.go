package page

import "testing"

func TestAFrameIsReadHoweverItIsWritten(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		raw string
		ok  bool
	}{
		"as a browser does":      {`{"data":"/9j/AA==","metadata":{"deviceWidth":7},"sessionId":3}`, true},
		"the picture last":       {`{"sessionId":3,"metadata":{"deviceWidth":7},"data":"/9j/AA=="}`, true},
		"with escapes":           {`{"data":"\/9j\/AA==","metadata":{"deviceWidth":7},"sessionId":3}`, true},
		"with spaces":            {`{ "data": "/9j/AA==", "metadata": {"deviceWidth":7}, "sessionId": 3 }`, true},
		"no base64":              {`{"data":"/9j!","metadata":{"deviceWidth":7},"sessionId":3}`, false},
		"broken after it":        {`{"data":"/9j/AA==","metadata":{`, false},
		"broken in it":           {`{"data":"/9j/AA`, false},
		"of another shape":       {`{"data":"/9j/AA==","metadata":[],"sessionId":3}`, false},
		"nothing":                {``, false},
		"something else instead": {`[]`, false},
	} {
		e, ok := frameOf([]byte(tt.raw))
		if ok != tt.ok || ok && (string(e.Data) != "\xff\xd8\xff\x00" || e.SessionID != 3 || e.Metadata.DeviceWidth != 7) {
			t.Errorf("%s: %+v, %v", name, e, ok)
		}
	}
}
