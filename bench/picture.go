package main

import (
	"encoding/base64"
	"errors"
	"fmt"
	"image/png"
	"io"
	"strings"
)

// Everybody's page is this large, so that all take the same picture.
const viewWidth, viewHeight = 1280, 720

// rightPicture makes sure that a picture in base64 is one, and as large as everybody's.
func rightPicture(encoded string) error {
	return rightPNG(base64.NewDecoder(base64.StdEncoding, strings.NewReader(encoded)))
}

func rightPNG(r io.Reader) error {
	switch is, err := png.DecodeConfig(r); {
	case err != nil:
		return errors.New("no picture came")
	case is.Width != viewWidth || is.Height != viewHeight:
		return fmt.Errorf("the picture is %d×%d, not %d×%d", is.Width, is.Height, viewWidth, viewHeight)
	}
	return nil
}
