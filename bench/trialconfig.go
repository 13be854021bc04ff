package bench

import (
	"errors"
	"os"
)

// defaultScaling is the config of trials without --config.
const defaultScaling = `[training]
batch_size = 128

[evaluation]
batch_size = 256
frequency = 10

[model]
@layers = "relu_relu_softmax.v1"
hidden_width = 128
dropout = 0.2

[optimizer]
@optimizers = "Adam.v1"
`

// configFile returns the path of the config as a file that workers can read. remove
// deletes it if it is temporary.
func (f *ScalingRun) configFile() (path string, remove func() error, err error) {
	if f.Config != "" {
		return f.Config, func() error { return nil }, nil
	}
	file, err := os.CreateTemp("", "ringtrain-scaling-*.cfg")
	if err != nil {
		return "", nil, err
	}
	_, err = file.WriteString(defaultScaling)
	if err = errors.Join(err, file.Close()); err != nil {
		return "", nil, errors.Join(err, os.Remove(file.Name()))
	}
	return file.Name(), func() error { return os.Remove(file.Name()) }, nil
}
