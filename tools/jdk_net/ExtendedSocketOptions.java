package jdk.net;

import java.net.SocketOption;

/** The names of the options that Apache's HTTP client asks about. */
public final class ExtendedSocketOptions {
  private ExtendedSocketOptions() {}

  public static final SocketOption<Integer> TCP_KEEPIDLE = named("TCP_KEEPIDLE");
  public static final SocketOption<Integer> TCP_KEEPINTERVAL = named("TCP_KEEPINTERVAL");
  public static final SocketOption<Integer> TCP_KEEPCOUNT = named("TCP_KEEPCOUNT");

  private static SocketOption<Integer> named(String name) {
    return new Option(name);
  }

  private static final class Option implements SocketOption<Integer> {
    private final String name;

    Option(String name) {
      this.name = name;
    }

    @Override
    public String name() {
      return name;
    }

    @Override
    public Class<Integer> type() {
      return Integer.class;
    }
  }
}
