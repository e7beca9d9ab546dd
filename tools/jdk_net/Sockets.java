package jdk.net;

import java.net.Socket;
import java.net.SocketOption;
import java.util.Set;

/** Says that no extended option of a socket is supported here; then nobody sets one. */
public final class Sockets {
  private Sockets() {}

  public static Set<SocketOption<?>> supportedOptions(Class<?> type) {
    return Set.of();
  }

  public static <T> void setOption(Socket socket, SocketOption<T> option, T value) {
    throw new UnsupportedOperationException(option.name());
  }
}
